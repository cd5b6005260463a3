import type { ResultsFile } from '../results.ts';
import { metricTable, targetTable, workloadTable } from './tables.ts';
import { judgeTargets, storeShares } from './targets.ts';

/** The workloads in the order in which they are shown, with the metric that peers are compared by. */
export const sections: { workload: string; title: string; main: string | null }[] = [
  { workload: 'send', title: 'Send', main: 'CPU per delivery' },
  { workload: 'max', title: 'Maximum', main: 'acknowledged' },
  { workload: 'half', title: 'At half of each server’s own maximum', main: 'ack p99' },
  { workload: 'light', title: 'Light load', main: 'ack p50' },
  { workload: 'bigrooms', title: 'Big rooms', main: 'CPU per delivery' },
  { workload: 'direct', title: 'Direct conversations', main: 'CPU per delivery' },
  { workload: 'idle', title: 'Idle sockets', main: null },
  { workload: 'storm', title: 'Logins and the reconnect storm', main: 'logins, 100 at a time' },
];
export const ownSections: { workload: string; title: string }[] = [
  { workload: 'rest', title: 'REST' },
  { workload: 'store', title: 'The store’s limit' },
  { workload: 'history', title: 'History' },
  { workload: 'list', title: 'Conversation list' },
  { workload: 'reactions', title: 'Reactions' },
  { workload: 'growth ×1', title: 'Growth: the first store' },
  { workload: 'growth ×10', title: 'Growth: ten times as large' },
  { workload: 'growth ×100', title: 'Growth: a hundred times as large' },
  { workload: 'start', title: 'Start' },
  { workload: 'retention', title: 'Thirty days' },
  { workload: 'soak', title: 'Soak' },
  { workload: 'nodes: one process', title: 'One process, an outside PostgreSQL' },
  { workload: 'nodes: two processes', title: 'Two processes of one machine, through Redis' },
  { workload: 'nodes: two nodes', title: 'Two nodes, through Redis' },
];

/** Plain text for the terminal: Markdown without the plots. */
export function renderSummary(file: ResultsFile): string {
  const has = (workload: string) => file.rows.some((r) => r.workload === workload);
  const judged = judgeTargets(file.rows).filter((j) => j.met !== null);
  const parts = [
    ...sections
      .filter((s) => has(s.workload))
      .map((s) => `${s.title}\n\n${workloadTable(file, s.workload, s.main)}`),
    ...ownSections
      .filter((s) => has(s.workload))
      .map((s) => `${s.title}\n\n${metricTable(file, s.workload)}`),
    ...(judged.length === 0 ? [] : [`Targets\n\n${targetTable(judged)}`]),
    ...storeShares(file.rows),
    ...file.notes.map((note) => `Note: ${note}`),
  ];
  return `\n${parts.join('\n\n')}\n`;
}
