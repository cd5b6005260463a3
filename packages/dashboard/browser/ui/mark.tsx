import type { ReactNode } from 'react';

/** A message and its answer, which together are a p; the other letters are drawn with the same stroke. */
export const Wordmark = ({ height }: { height: number }): ReactNode => (
  <svg viewBox="3 -7 128.1 39" height={height} width={(height * 128.1) / 39} role="img" aria-label="Parley">
    <path
      fill="var(--parley-say)"
      fillRule="evenodd"
      d="M17 2a10.5 10.5 0 0 1 0 21H5V14A12 12 0 0 1 17 2Zm0 6.2a4.3 4.3 0 1 0 0 8.6 4.3 4.3 0 0 0 0-8.6Z"
    />
    <path fill="var(--parley-hear)" d="M5 25.2h8.9a5.8 5.8 0 0 1-5.8 5.8h-3.1Z" />
    <path
      fill="var(--parley-text)"
      d="M31.5 12.5a10.5 10.5 0 1 1 21 0a10.5 10.5 0 1 1 -21 0ZM37.1 12.5a4.9 4.9 0 1 0 9.8 0a4.9 4.9 0 1 0 -9.8 0ZM46.9 2h5.6v21h-5.6ZM56.7 2h5.6v21h-5.6ZM60.3 13.7C60.3 5.4 65.3 1.7 70.7 2.1v5.5C65.5 7.2 62.3 10 62.3 13.7ZM73.3 -6h5.6v29h-5.6ZM93.2 2a10.5 10.5 0 0 1 10.5 10.5c0 .8-.06 1.5-.16 2.1H87.8a5.1 5.1 0 0 0 9.2 2.2l4.3 3.2A10.5 10.5 0 1 1 93.2 2ZM93.2 6.9a5.1 5.1 0 0 0 -5 3.7h10a5.1 5.1 0 0 0 -5-3.7ZM106.1 2h6.1l5 13.2 4.9-13.2h5.9L118.7 26.6C117.4 29.9 115.3 31 112.3 31H109.1v-4.9h2.4c1.5 0 2.3-.4 2.9-1.9l.4-1.1Z"
    />
  </svg>
);

/** A round with one square corner, on a unit square. */
const leaf = 'M.5 0A.5.5 0 0 1 .5 1H0V.5A.5.5 0 0 1 .5 0Z';

/** Rows of leaves: d and m are quiet greens, l is light, e is ember; in capitals with a hole. A point is a gap. */
const rows = [
  'DlddM.d',
  'dle..D.',
  '.dm..Md',
  'd..mME.',
  'L.lLdmd',
  'ddmD.dM',
  'm..mml.',
  '.dlLlD.',
  'ddD.e.d',
  '.dDmD.D',
];
const fills: Record<string, string> = {
  d: 'oklch(from var(--parley-own) calc(l - 0.055) c h)',
  m: 'oklch(from var(--parley-own) calc(l + 0.045) c h)',
  l: 'oklch(from var(--parley-own) 0.78 0.13 h)',
  e: 'var(--parley-series-2)',
};

/** The pattern of covers: decoration. */
export const LeafPattern = (): ReactNode => (
  <svg viewBox="0 0 560 800" preserveAspectRatio="xMidYMid slice" aria-hidden>
    <rect width="560" height="800" fill="var(--parley-own)" />
    {rows.flatMap((row, y) =>
      [...row].map((kind, x) => {
        const fill = fills[kind.toLowerCase()];
        if (fill === undefined) return null;
        const turned = (x * 3 + y * 2) % 5 < 2;
        return (
          <g key={`${x} ${y}`} transform={`translate(${x * 80 + 8} ${y * 80 + 8})`}>
            <path
              d={leaf}
              fill={fill}
              transform={turned ? 'scale(64) translate(1 0) scale(-1 1)' : 'scale(64)'}
            />
            {kind === kind.toLowerCase() ? null : <circle cx="32" cy="32" r="13" fill="var(--parley-own)" />}
          </g>
        );
      }),
    )}
  </svg>
);

/** Two leaves that face each other; on the way between them what is missing. */
export const Missing = (): ReactNode => (
  <svg width="200" height="60" viewBox="0 0 200 60" aria-hidden>
    <path d={leaf} fill="var(--parley-say)" transform="scale(58)" />
    <circle cx="29" cy="29" r="11.5" fill="var(--parley-surface)" />
    <path d={leaf} fill="var(--parley-hear)" transform="translate(200 0) scale(-58 58)" />
    <circle cx="171" cy="29" r="11.5" fill="var(--parley-surface)" />
    <path
      d="M66 29h68"
      stroke="var(--parley-control)"
      strokeWidth="2"
      strokeLinecap="round"
      strokeDasharray="0 6"
    />
    <path
      d={leaf}
      fill="var(--parley-surface)"
      stroke="var(--parley-control)"
      strokeWidth=".1"
      transform="translate(90 19) scale(19)"
    />
  </svg>
);
