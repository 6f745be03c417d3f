"""Hashes and encodings."""

from __future__ import annotations

from headwater.data.functions.declared import function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term


def _charset(term: Term) -> None:
    if term.text.upper() not in ("UTF-8", "UTF8", "US-ASCII"):
        raise Refused(f"the charset {term.text!r} is not supported; use 'UTF-8'")


def _encoded(call: Call) -> str:
    _charset(call.terms[1])
    return f"encode({call[0]})"


def _decoded(call: Call) -> str:
    _charset(call.terms[1])
    return f"decode({call[0]})"


def _sha2(call: Call) -> str:
    if call.terms[1].literal != 256:
        raise Refused(f"SHA2 has 256 bits here; got {call.terms[1].literal}")
    return f"sha256({call[0]})"


HASHES = (
    function("MD5", "(string) -> string", "md5({0})", "The MD5 hash in hexadecimal."),
    function("SHA1", "(string) -> string", "sha1({0})", "The SHA-1 hash in hexadecimal."),
    function("SHA256", "(string) -> string", "sha256({0})", "The SHA-256 hash in hexadecimal."),
    function(
        "SHA2",
        "(string, literal int) -> string",
        _sha2,
        "The SHA-256 hash in hexadecimal, if the second is 256; there is no other.",
    ),
    function("ENCODE", "(string, literal string) -> binary", _encoded, "The bytes of a string in a charset."),
    function("DECODE", "(binary, literal string) -> string", _decoded, "The string of bytes in a charset."),
    function(
        "TO_BASE64",
        "(string) -> string",
        "to_base64(encode({0}))",
        "The string's bytes in Base64.",
        ("(binary) -> string", "to_base64({0})"),
    ),
    function(
        "FROM_BASE64", "(string) -> string", "decode(from_base64({0}))", "The string whose bytes are given in Base64."
    ),
    function(
        "HEX",
        "(string) -> string",
        "hex(encode({0}))",
        "An integer or the bytes of a string in hexadecimal, in upper case.",
        ("(bigint) -> string", "hex({0})"),
    ),
    function(
        "UNHEX",
        "(string) -> binary",
        "CASE WHEN regexp_full_match({0}, '[0-9A-Fa-f]*') THEN from_hex({0}) END",
        "The bytes that are given in hexadecimal.",
    ),
    function("BIN", "(bigint) -> string", "bin({0})", "An integer in binary."),
    function(
        "URL_ENCODE", "(string) -> string", "replace(url_encode({0}), '%20', '+')", "The string as part of a URL."
    ),
    function(
        "URL_DECODE",
        "(string) -> string",
        "CASE WHEN regexp_full_match({0}, '([^%]|%[0-9A-Fa-f][0-9A-Fa-f])*') THEN "
        "url_decode(replace({0}, '+', ' ')) END",
        "The string that part of a URL stands for.",
    ),
)
