// The console begins here.
import { h, render } from "./preact.js";
import { App } from "./app.js";

render(h(App, null), /** @type {Element} */ (document.getElementById("console")));
