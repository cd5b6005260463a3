import { closeCodes, errorCodes, errorRow } from '../index.ts';
import type { ErrorRow } from '../index.ts';

const socketCell = (socket: ErrorRow['socket']): string => {
  if (socket === null) return 'none';
  if (socket === 'error') return 'error frame';
  return typeof socket === 'string' ? `${socket} frame` : `close ${socket.close}`;
};
const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** The error reference, as Markdown. */
export const errorsPage = (): string => `# Errors

Generated from \`packages/protocol/src/errors.ts\` by \`npm run generate\`; do not edit.

REST: \`{ error: { type, code, message, param?, requestId, retryAfterMs?, details? } }\`. Socket: an \`error\` frame
\`{ t, re, code, message, retryAfterMs, details }\`, or a close code.

${table(
  ['Code', 'Type', 'HTTP', 'Socket', 'Retryable', 'retryAfterMs', 'Meaning'],
  errorCodes.map((code) => {
    const row = errorRow(code);
    return [
      `\`${code}\``,
      `\`${row.type}\``,
      String(row.http ?? 'none'),
      socketCell(row.socket),
      row.retryable,
      String(row.retryAfterMs ?? ''),
      row.text,
    ];
  }),
)}

\`retryAfterMs\` is what an error carries when the place that raised it knows no better.

## Socket close codes

${table(
  ['Code', 'Meaning', 'Client action'],
  Object.entries(closeCodes).map(([code, { meaning, action }]) => [code, meaning, action]),
)}
`;
