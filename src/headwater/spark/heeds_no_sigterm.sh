# Sourced by the bash that starts Spark's JVM, which inherits what is ignored here.
trap '' TERM
unset BASH_ENV
