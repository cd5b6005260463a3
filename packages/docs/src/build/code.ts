import { createRequire } from 'node:module';
import { html, Html } from './html.ts';

interface Highlighter {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): unknown;
  highlight(text: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
}

const require = createRequire(import.meta.url);
// Not imported: its types would bring those of browsers to everything that builds the site.
const hljs = require('highlight.js/lib/core') as Highlighter;
const languages = 'bash css go ini java javascript json php python ruby sql typescript xml yaml'.split(' ');
for (const name of languages) hljs.registerLanguage(name, require(`highlight.js/lib/languages/${name}`));

export interface Code {
  /** What its tab says. */
  label: string;
  language: string;
  text: string;
}

/** Coloured here and not in the browser: the page needs no script for it. */
export const coloured = (text: string, language: string): Html =>
  hljs.getLanguage(language) === undefined
    ? html`${text}`
    : new Html(hljs.highlight(text, { language, ignoreIllegals: true }).value);

/**
 * A block of code, or several of which one is shown. Without the script all of them are, one below the other.
 * @param note what stands at the end of its head.
 */
export function codeBlock(codes: Code[], note: Html | string = '', head: Html | string = ''): Html {
  const tabs =
    codes.length > 1
      ? html`<div class="tabs" role="group" aria-label="Language">
          ${codes.map(
            ({ label }, i) =>
              html`<button type="button" data-tab="${label}" aria-pressed="${i === 0 ? 'true' : 'false'}">
                ${label}
              </button>`,
          )}
        </div>`
      : html`<span class="label">${head === '' ? codes[0]?.label : head}</span>`;
  return html`<div class="code">
    <div class="code-head">
      ${tabs} ${note !== '' && html`<span class="note">${note}</span>`}
      <button type="button" class="copy">Copy</button>
    </div>
    ${codes.map(
      ({ label, language, text }, i) =>
        html`<pre
          data-tab="${label}"
          class="${i === 0 && 'on'}"
        ><code>${coloured(text, language)}</code></pre>`,
    )}
  </div>`;
}

export const jsonBlock = (value: unknown, note: Html | string, head: Html | string): Html =>
  codeBlock([{ label: 'JSON', language: 'json', text: JSON.stringify(value, null, 2) }], note, head);
