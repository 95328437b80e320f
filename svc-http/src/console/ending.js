// The dialog before something ends for good.
import { Dialog, Form, html, usePlace } from "./kit.js";
import { useApi } from "./list.js";

/** What ends with it stands within; the press that ends it is marked as dangerous.
 * @param {{ title: string, path: string, submit?: string, said?: string, close: () => void, done: (got: any) => void, children?: any }} props `path`: what is deleted; `said`: what is told once it is. */
export function Ending({ title, path, submit = "Remove it", said, close, done, children }) {
  const api = useApi();
  const { say } = usePlace();
  const end = async () => {
    const got = await api("DELETE", path);
    // What somebody else has ended meanwhile has ended.
    return got.status === 404 ? { ...got, status: 204, error: {} } : got;
  };
  const ended = (/** @type {any} */ got) => {
    if (said) say(said);
    done(got);
  };
  return html`<${Dialog} title=${title} close=${close}>
    ${children}
    <${Form} act=${end} submit=${submit} kind="danger" cancel=${close} done=${ended} />
  <//>`;
}
