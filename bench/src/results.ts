/** What was measured: one row for each workload, server and metric, one value for each round. */

export interface Row {
  workload: string;
  server: string;
  metric: string;
  unit: string;
  values: number[];
}

export interface ResultsFile {
  at: string;
  machine: [string, string][];
  labels: Record<string, string>;
  rows: Row[];
  notes: string[];
}

export class Results {
  readonly rows: Row[] = [];
  readonly notes: string[] = [];
  /** Something that must hold did not. */
  failed = false;

  add(workload: string, server: string, metric: string, unit: string, value: number): void {
    let row = this.rows.find((r) => r.workload === workload && r.server === server && r.metric === metric);
    if (!row) this.rows.push((row = { workload, server, metric, unit, values: [] }));
    row.values.push(value);
  }

  note(text: string): void {
    if (!this.notes.includes(text)) this.notes.push(text);
  }
}

/** A run of some workloads into the results of earlier ones: what it measured anew replaces what was there. */
export function merged(before: ResultsFile, now: ResultsFile): ResultsFile {
  const anew = new Set(now.rows.map((row) => row.workload));
  return {
    ...now,
    labels: { ...before.labels, ...now.labels },
    rows: [...before.rows.filter((row) => !anew.has(row.workload)), ...now.rows],
    notes: [...before.notes.filter((note) => !anew.has(/^\w+/.exec(note)?.[0] ?? '')), ...now.notes],
  };
}

export const valuesOf = (rows: readonly Row[], workload: string, server: string, metric: string): number[] =>
  rows.find((r) => r.workload === workload && r.server === server && r.metric === metric)?.values ?? [];
