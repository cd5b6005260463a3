import { writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';

/**
 * How far below ours the priority of a connection is, for an embedded PostgreSQL: each of its connections is a process
 * of this machine. Where the processor is short, whoever sends a message goes first, then requests, and then what
 * nobody waits for. The last still gets about a tenth of what a send gets, so that locks it holds are given back soon.
 */
export const below = { sends: 0, requests: 4, work: 10 };
export type Priority = keyof typeof below;

/** Best effort: where the system does not allow it, all have the same priority. */
export function givePriority(pid: number, priority: Priority): void {
  if (below[priority] === 0) return;
  const nice = Math.min(constants.priority.PRIORITY_LOW, getPriority() + below[priority]);
  try {
    setPriority(pid, nice);
    // PostgreSQL opens a session for each of its processes. Linux may share the processor out among sessions, and then
    // this counts and the above does not.
    writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // Not allowed, or not Linux.
  }
}
