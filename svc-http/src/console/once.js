// What is shown this once, and is lost by no slip.
import { Copy, Dialog, html, stayAt, staying } from "./kit.js";
import { useLayoutEffect, useState } from "./hooks.js";

let stands = false;
/** Whether something that is shown only once stands here, or stood here until what is drawn now took its place. */
export const isShownOnce = () => stands;

/** That it went with what closed its dialog: a session that has ended, another role. */
export const Gone = () => html`<p class="note"><strong>A secret that is shown only once stood here.</strong> If you have not kept it, revoke it and make another.</p>`;

/** Keeps a dialog that shows something this once: the browser's way back leaves it where it is, and to leave the page is asked about. */
export function Once() {
  const [isKept, set] = useState(false);
  useLayoutEffect(() => {
    const address = location.href;
    const leaving = staying((event) => {
      set(true);
      return stayAt(event, address);
    });
    const leave = (/** @type {BeforeUnloadEvent} */ event) => event.preventDefault();
    addEventListener("beforeunload", leave);
    stands = true;
    return () => {
      queueMicrotask(() => void (stands = false));
      leaving();
      removeEventListener("beforeunload", leave);
    };
  }, []);
  return isKept && html`<p class="note" role="alert">This is shown only once, so the page has not gone back. Keep it, press the button below, then go back.</p>`;
}

/** A secret that is shown this once. @param {{ title: string, secret: string, what?: string, close: () => void, children?: any }} props */
export const ShownOnce = ({ title, secret, what = "key", close, children }) => html`<${Dialog} title=${title} close=${() => {}}>
  <p>Copy it now and keep it where secrets are kept: it is not shown again.</p>
  <p class="secret"><code>${secret}</code></p>
  ${children}
  <${Once} />
  <p class="acts"><${Copy} text=${secret} label=${`Copy the ${what}`} /><button type="button" class="main" onClick=${close}>I have kept it</button></p>
<//>`;
