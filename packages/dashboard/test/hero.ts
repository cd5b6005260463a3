import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The picture at the top of README.md: two sides, and the one numbered line between them. */

export const heroSize = { width: 1280, height: 560 };

const themes = {
  dark: {
    back: '#0A231B',
    text: '#F4F7F5',
    quiet: '#B4CCC1',
    box: '#123529',
    dots: '#2C5646',
    number: '#A9C3B7',
    say: '#57D0A3',
    hear: '#F5A268',
    on: '#0A231B',
  },
  light: {
    back: '#F4F7F5',
    text: '#14201B',
    quiet: '#42534B',
    box: '#DFF1E9',
    dots: '#A6BDB1',
    number: '#5A6B63',
    say: '#0F6B4F',
    hear: '#F5A268',
    on: '#FFFFFF',
  },
};

/** A file of the fonts, for a data URL. */
export const font = (path: string): string =>
  readFileSync(fileURLToPath(import.meta.resolve(`@fontsource-variable/${path}`))).toString('base64');

const letters =
  'M31.5 12.5a10.5 10.5 0 1 1 21 0a10.5 10.5 0 1 1 -21 0ZM37.1 12.5a4.9 4.9 0 1 0 9.8 0a4.9 4.9 0 1 0 -9.8 0ZM46.9 2h5.6v21h-5.6ZM56.7 2h5.6v21h-5.6ZM60.3 13.7C60.3 5.4 65.3 1.7 70.7 2.1v5.5C65.5 7.2 62.3 10 62.3 13.7ZM73.3 -6h5.6v29h-5.6ZM93.2 2a10.5 10.5 0 0 1 10.5 10.5c0 .8-.06 1.5-.16 2.1H87.8a5.1 5.1 0 0 0 9.2 2.2l4.3 3.2A10.5 10.5 0 1 1 93.2 2ZM93.2 6.9a5.1 5.1 0 0 0 -5 3.7h10a5.1 5.1 0 0 0 -5-3.7ZM106.1 2h6.1l5 13.2 4.9-13.2h5.9L118.7 26.6C117.4 29.9 115.3 31 112.3 31H109.1v-4.9h2.4c1.5 0 2.3-.4 2.9-1.9l.4-1.1Z';

/** What was said, in order: from below the first side, from above the second. */
const said = ['Is a screw missing?', 'It is the M4 at the elbow.', 'Found it, thank you!', 'On Thursday!'];
const first = 851;
const [top, middle, bottom] = [120, 280, 440];

export function hero(theme: keyof typeof themes): string {
  const c = themes[theme];
  const ways = said.map((text, index) => {
    const below = index % 2 === 0;
    const from = 610 + index * 150;
    const [start, end] = below ? [bottom, top] : [top, bottom];
    const tone = below ? c.hear : c.say;
    const on = below ? '#0A231B' : c.on;
    const corner = below ? '4px 18px 18px 18px' : '18px 18px 18px 4px';
    return {
      line: `<path d="M${from} ${start}L${from + 100} ${end}" stroke="${tone}" stroke-width="3" opacity=".9"/>
        <circle cx="${from}" cy="${start}" r="9" fill="${tone}"/>
        <circle cx="${from + 100}" cy="${end}" r="8" fill="${c.back}" stroke="${tone}" stroke-width="3"/>
        <circle cx="${from + 50}" cy="${middle}" r="12" fill="${tone}" stroke="${c.back}" stroke-width="4"/>
        <text x="${from + 70}" y="${middle - 10}" fill="${c.number}" font-family="Mono" font-size="15">${first + index}</text>`,
      bubble: `<div style="position:absolute;left:${from}px;top:${below ? 472 : 42}px;padding:10px 16px;font-size:18px;line-height:1.35;font-weight:450;white-space:nowrap;border-radius:${corner};background:${tone};color:${on}">${text}</div>`,
    };
  });
  return `<!doctype html><meta charset="utf-8"><style>
    @font-face { font-family: Sans; font-weight: 100 900; src: url(data:font/woff2;base64,${font('geist/files/geist-latin-wght-normal.woff2')}) }
    @font-face { font-family: Mono; font-weight: 100 900; src: url(data:font/woff2;base64,${font('geist-mono/files/geist-mono-latin-wght-normal.woff2')}) }
    body { margin: 0; width: ${heroSize.width}px; height: ${heroSize.height}px; overflow: hidden; position: relative; background: ${c.back}; color: ${c.text}; font-family: Sans }
    h1 { margin: 40px 0 16px; font-size: 45px; line-height: 1.1; letter-spacing: -.03em; font-weight: 620 }
    p { margin: 0; font-size: 20px; line-height: 1.5; color: ${c.quiet} }
    code { display: inline-block; margin-top: 28px; padding: 13px 20px; border-radius: 14px 14px 14px 4px; background: ${c.box}; font: 500 17px Mono }
  </style>
  <div style="position:absolute;left:72px;top:80px;width:480px">
    <svg height="84" viewBox="3 -7 128.1 39" style="display:block">
      <path fill="${c.say}" fill-rule="evenodd" d="M17 2a10.5 10.5 0 0 1 0 21H5V14A12 12 0 0 1 17 2Zm0 6.2a4.3 4.3 0 1 0 0 8.6 4.3 4.3 0 0 0 0-8.6Z"/>
      <path fill="${theme === 'dark' ? c.hear : '#E8752F'}" d="M5 25.2h8.9a5.8 5.8 0 0 1-5.8 5.8h-3.1Z"/>
      <path fill="${c.text}" d="${letters}"/>
    </svg>
    <h1>Chat that you run yourself.</h1>
    <p>Messages, presence, calls, webhooks and a dashboard. One command, one database, no message lost or doubled.</p>
    <code><span style="color:${c.say}">$</span> npm ci &amp;&amp; npm start</code>
  </div>
  <svg width="${heroSize.width}" height="${heroSize.height}" style="position:absolute;inset:0;z-index:-1">
    <path d="M570 ${top}H1280M570 ${bottom}H1280" stroke="${c.dots}" stroke-width="2.5" stroke-dasharray="0.1 9" stroke-linecap="round"/>
    <path d="M570 ${middle}H1280" stroke="${c.text}" stroke-width="3"/>
    ${ways.map(({ line }) => line).join('')}
  </svg>${ways.map(({ bubble }) => bubble).join('')}`;
}
