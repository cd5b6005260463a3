import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { html, Html } from './html.ts';

const languages = { bash, css, go, ini, java, javascript, json, php, python, ruby, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

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
        html`<pre data-tab="${label}" class="${i === 0 && 'on'}"><code>${coloured(text, language)}</code></pre>`,
    )}
  </div>`;
}

export const jsonBlock = (value: unknown, note: Html | string, head: Html | string): Html =>
  codeBlock([{ label: 'JSON', language: 'json', text: JSON.stringify(value, null, 2) }], note, head);
