import { format } from '../stats.ts';
import type { Spread } from '../stats.ts';

/** Plots, written by hand: bars with the range over the rounds as a line. Readable on light and dark pages. */

export interface Bar extends Spread {
  label: string;
  own: boolean;
}

const width = 760;
const labelWidth = 270;
const rowHeight = 30;
const plotWidth = width - labelWidth - 110;

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('`', '');

export function barPlot(title: string, unit: string, bars: readonly Bar[]): string {
  const known = bars.filter((b) => !Number.isNaN(b.median));
  const top = Math.max(...known.map((b) => b.high), 0) || 1;
  const x = (value: number): number => Math.round((labelWidth + (value / top) * plotWidth) * 10) / 10;
  const height = 44 + known.length * rowHeight;
  const lines = known.map((bar, i) => {
    const y = 40 + i * rowHeight;
    const middle = y + 10;
    return [
      `<text x="${labelWidth - 10}" y="${middle + 4}" text-anchor="end"${bar.own ? ' font-weight="bold"' : ''}>${escape(bar.label)}</text>`,
      `<rect x="${labelWidth}" y="${y}" width="${Math.max(1, x(bar.median) - labelWidth)}" height="20" fill="${bar.own ? '#2f6fde' : '#9aa5b1'}"/>`,
      `<line x1="${x(bar.low)}" y1="${middle}" x2="${x(bar.high)}" y2="${middle}" stroke="#d9480f" stroke-width="2"/>`,
      `<text x="${x(bar.high) + 8}" y="${middle + 4}">${format(bar.median)}${escape(unit)}</text>`,
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="sans-serif" font-size="13">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<g fill="#1f2933"><text x="10" y="22" font-size="15" font-weight="bold">${escape(title)}</text>`,
    ...lines,
    '</g></svg>',
    '',
  ].join('\n');
}
