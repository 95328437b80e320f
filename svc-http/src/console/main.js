// The console begins here.
import { h, render } from "./preact.js";
import { App } from "./app.js";
import { keepToKeyboard } from "./keyboard.js";

keepToKeyboard();
render(h(App, null), /** @type {Element} */ (document.getElementById("console")));
