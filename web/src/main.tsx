import { render } from "preact";
import { takeToken } from "./api";
import { App } from "./app";
import "./style.css";
import { applyTheme } from "./theme";

takeToken();
applyTheme();
render(<App />, document.getElementById("root")!);
