/** What a command answers, for people: a list as a table, one thing as its fields. */

type Row = Readonly<Record<string, unknown>>;

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(', ');
  if (isRow(value)) return JSON.stringify(value);
  // A control character in a name must not act on the terminal.
  return String(value as string | number).replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}

/** `{ settings: { pushMode } }` has the field `settings.pushMode`. */
function flat(row: Row, prefix = ''): [string, unknown][] {
  return Object.entries(row).flatMap(([name, value]) =>
    isRow(value) && Object.keys(value).length > 0
      ? flat(value, `${prefix}${name}.`)
      : [[`${prefix}${name}`, value] as [string, unknown]],
  );
}

/** `createdAt` is read as `created at`. */
const heading = (name: string): string => name.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();

function aligned(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    for (const [i, text] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, text.length);
  return rows
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function table(rows: readonly Row[], columns: readonly string[] | undefined): string {
  if (rows.length === 0) return 'None.';
  const fields = rows.map((row) => new Map(flat(row)));
  const names = columns ?? [...new Set(fields.flatMap((row) => [...row.keys()]))];
  return aligned([
    names.map((name) => heading(name).toUpperCase()),
    ...fields.map((row) => names.map((name) => cell(row.get(name)))),
  ]);
}

export function shown(answer: unknown, columns?: readonly string[]): string {
  if (Array.isArray(answer) && answer.every(isRow)) return table(answer, columns);
  if (isRow(answer)) return aligned(flat(answer).map(([name, value]) => [heading(name), cell(value)]));
  return cell(answer);
}
