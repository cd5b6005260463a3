import { html, Html } from './html.ts';

/**
 * Renders the part of Markdown that our guides use: headings, paragraphs, lists, tables, code. Links to other files
 * become plain text.
 */

const inline = (text: string): Html =>
  new Html(
    html`${text}`.text
      .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
      .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
      .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1'),
  );

const cells = (row: string): string[] =>
  row
    .trim()
    .replaceAll(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());

function block(lines: string[]): Html {
  const [first = ''] = lines;
  const heading = /^(#{2,4}) (.*)$/.exec(first);
  if (heading)
    return heading[1]!.length === 2
      ? html`<h3>${inline(heading[2]!)}</h3>`
      : html`<h4>${inline(heading[2]!)}</h4>`;
  if (first.startsWith('|')) {
    const [head, , ...rows] = lines.map(cells);
    return html`<div class="wide">
      <table>
        <thead>
          <tr>
            ${head!.map((cell) => html`<th>${inline(cell)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) =>
              html`<tr>
                ${row.map((cell) => html`<td>${inline(cell)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
  }
  if (first.startsWith('- ')) {
    const items = lines.join('\n').slice(2).split(/\n- /);
    return html`<ul>
      ${items.map((item) => html`<li>${inline(item.replaceAll(/\s+/g, ' '))}</li>`)}
    </ul>`;
  }
  return html`<p>${inline(lines.join(' '))}</p>`;
}

/** Renders a guide without its title, which is the title of its section. */
export function markdown(source: string): Html {
  const parts: Html[] = [];
  for (const piece of source.replace(/^# .*\n/, '').split(/^(```[\s\S]*?^```)$/m)) {
    const code = /^```\w*\n([\s\S]*?)```$/.exec(piece);
    if (code) parts.push(html`<pre><code>${code[1]!.trimEnd()}</code></pre>`);
    else
      for (const paragraph of piece.split(/\n{2,}/)) {
        const lines = paragraph.split('\n').filter((line) => line.trim() !== '');
        if (lines.length > 0) parts.push(block(lines));
      }
  }
  return html`${parts}`;
}
