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
    return got.status === 404 ? { ...got, status: 204, error: {}, isGone: true } : got;
  };
  const ended = (/** @type {any} */ got) => {
    // Somebody else has ended it meanwhile, or it is not to be seen from here any more: which of the two, nobody is told.
    if (got.isGone) {
      say("It was not there any more, or is not yours to see now.");
      return close();
    }
    if (said) say(said);
    done(got);
  };
  return html`<${Dialog} title=${title} close=${close}>
    ${children}
    <${Form} act=${end} submit=${submit} kind="danger" cancel=${close} done=${ended} />
  <//>`;
}
