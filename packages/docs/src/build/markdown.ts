import { Marked } from 'marked';
import type { Token, Tokens } from 'marked';
import { codeBlock } from './code.ts';
import type { Code } from './code.ts';
import { html, Html, plain } from './html.ts';

/** A guide: the Markdown of the repository as a page. */

export interface Heading {
  id: string;
  depth: number;
  title: string;
}
export interface Section {
  id: string;
  title: string;
  text: string;
}
export interface Rendered {
  title: string;
  body: Html;
  headings: Heading[];
  /** What the search finds: the title of each part, and its text. */
  sections: Section[];
}

export interface Links {
  /** Where a link leads; null: nowhere on this site, so that only its text is left. */
  page: (href: string) => string | null;
  /** Where an operation that is named stands in the reference. */
  operation: (name: string) => string | null;
}

const labels: Record<string, [label: string, language: string]> = {
  sh: ['Shell', 'bash'],
  js: ['Node', 'javascript'],
  ts: ['TypeScript', 'typescript'],
  tsx: ['React', 'typescript'],
  jsx: ['React', 'javascript'],
  python: ['Python', 'python'],
  go: ['Go', 'go'],
  php: ['PHP', 'php'],
  ruby: ['Ruby', 'ruby'],
  java: ['Java', 'java'],
  html: ['HTML', 'xml'],
  css: ['CSS', 'css'],
  json: ['JSON', 'json'],
  sql: ['SQL', 'sql'],
  yaml: ['YAML', 'yaml'],
  ini: ['Settings', 'ini'],
};

/** The first line of a fence: its language, and the name of a file if it is one. */
function codeOf({ lang = '', text }: Tokens.Code): Code & { file: string | undefined } {
  const [kind = '', file] = lang.split(/\s+/);
  const [label, language] = labels[kind] ?? ['Text', 'text'];
  return { label: kind === 'sh' && /^curl /m.test(text) ? 'curl' : label, language, text, file };
}

/** As GitHub names the anchors of headings. */
const slug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');

export function markdown(source: string, links: Links): Rendered {
  const headings: Heading[] = [];
  const used = new Set<string>();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const inner = this.parser.parseInline(tokens);
        const title = plain(new Html(inner));
        let id = slug(title);
        while (used.has(id)) id += '-';
        used.add(id);
        headings.push({ id, depth, title });
        return `<h${depth} id="${id}">${inner}</h${depth}>`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const to = links.page(href);
        return to === null ? inner : html`<a href="${to}">${new Html(inner)}</a>`.text;
      },
      codespan({ text }) {
        const code = html`<code>${text}</code>`;
        const to = links.operation(text);
        return to === null ? code.text : html`<a href="${to}">${code}</a>`.text;
      },
      code: (token) => codeBlock([codeOf(token)], '', codeOf(token).file ?? '').text,
      image: ({ text }) => html`${text}`.text,
      table(token) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
        const head = token.header.some((cell) => cell.text !== '');
        return `<div class="wide" tabindex="0" role="region" aria-label="Table">
          <table>${head ? `<thead>${row(token.header, 'th')}</thead>` : ''}<tbody>${token.rows
            .map((cells) => row(cells, 'td'))
            .join('')}</tbody></table></div>`;
      },
    },
  });
  const tokens = marked.lexer(source);
  const [title] = tokens.filter((token): token is Tokens.Heading => token.type === 'heading');
  const parts: Html[] = [];
  const sections: Section[] = [];
  let section: Section = { id: '', title: title?.text ?? '', text: '' };
  for (const group of grouped(tokens.filter((token) => token !== title))) {
    const [first] = group;
    if (first?.type === 'code') {
      const codes = (group as Tokens.Code[]).map(codeOf);
      parts.push(codeBlock(codes, '', codes[0]?.file ?? ''));
      continue;
    }
    const rendered = new Html(marked.parser(group));
    parts.push(rendered);
    if (first?.type === 'heading' && (first as Tokens.Heading).depth <= 3) {
      if (section.text !== '') sections.push(section);
      section = { id: headings.at(-1)!.id, title: plain(rendered), text: '' };
    } else section.text += ` ${plain(rendered)}`;
  }
  sections.push(section);
  return {
    title: title === undefined ? '' : plain(html`${title.text}`),
    body: html`${parts}`,
    headings,
    sections,
  };
}

/** Blocks of code in several languages that follow each other are one block with tabs. */
function grouped(tokens: Token[]): Token[][] {
  const groups: Token[][] = [];
  for (const token of tokens) {
    if (token.type === 'space') continue;
    const last = groups.at(-1);
    const [previous] = last ?? [];
    const together =
      token.type === 'code' &&
      previous?.type === 'code' &&
      !last!.some((one) => codeOf(one as Tokens.Code).label === codeOf(token as Tokens.Code).label);
    if (together) last!.push(token);
    else groups.push([token]);
  }
  return groups;
}
