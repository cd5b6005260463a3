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

  add(workload: string, server: string, metric: string, unit: string, value: number): void {
    let row = this.rows.find((r) => r.workload === workload && r.server === server && r.metric === metric);
    if (!row) this.rows.push((row = { workload, server, metric, unit, values: [] }));
    row.values.push(value);
  }

  note(text: string): void {
    if (!this.notes.includes(text)) this.notes.push(text);
  }
}

export const valuesOf = (rows: readonly Row[], workload: string, server: string, metric: string): number[] =>
  rows.find((r) => r.workload === workload && r.server === server && r.metric === metric)?.values ?? [];
