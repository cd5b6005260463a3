import { readdirSync, readFileSync } from 'node:fs';

/** CPU time and memory of process trees, from /proc. */

interface Stat {
  pid: number;
  name: string;
  parent: number;
  /** Clock ticks of the process and of its children that have ended. */
  ticks: number;
}

const ticksPerSecond = 100; // USER_HZ, the same on every Linux that Node runs on

/** The text of /proc/<pid>/stat; the command may hold spaces and brackets. */
export function parseStat(text: string): Stat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const at = (n: number) => Number(fields[n - 3]);
  const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
  return { pid: parseInt(text, 10), name, parent: at(4), ticks: at(14) + at(15) + at(16) + at(17) };
}

const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null; // it ended a moment ago
  }
};

function tree(roots: readonly number[]): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const text = read(`/proc/${name}/stat`);
      return text === null ? [] : [parseStat(text)];
    });
  const byParent = Map.groupBy(all, (s) => s.parent);
  const found = new Map<number, Stat>();
  const queue = all.filter((s) => roots.includes(s.pid));
  for (let next = queue.pop(); next; next = queue.pop()) {
    if (found.has(next.pid)) continue;
    found.set(next.pid, next);
    queue.push(...(byParent.get(next.pid) ?? []));
  }
  return [...found.values()];
}

export interface Cpu {
  /** Milliseconds. */
  all: number;
  /** PostgreSQL's part of it. */
  database: number;
}

/** CPU used so far by the processes and all below them. */
export function cpuOf(roots: readonly number[]): Cpu {
  const cpu: Cpu = { all: 0, database: 0 };
  for (const { name, ticks } of tree(roots)) {
    const ms = (ticks * 1_000) / ticksPerSecond;
    cpu.all += ms;
    if (name === 'postgres') cpu.database += ms;
  }
  return cpu;
}

/** Milliseconds, over all processors, that the host of this machine gave to others although something here wanted to run. */
export function stolenMs(): number {
  const fields = (read('/proc/stat') ?? '').split('\n', 1)[0]!.split(/ +/);
  return (Number(fields[8] ?? 0) * 1_000) / ticksPerSecond;
}

/** Memory in kilobytes and open descriptors of one process; NaN when it has ended. */
export function usageOf(pid: number): { rss: number; descriptors: number } {
  const rss = Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? NaN);
  try {
    return { rss, descriptors: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    return { rss, descriptors: NaN };
  }
}

/** Kilobytes resident in the processes and all below them, without PostgreSQL's. */
export function rssOf(roots: readonly number[]): number {
  let sum = 0;
  for (const { pid } of tree(roots)) {
    const text = read(`/proc/${pid}/status`) ?? '';
    if (!text.startsWith('Name:\tpostgres')) sum += Number(/^VmRSS:\s+(\d+)/m.exec(text)?.[1] ?? 0);
  }
  return sum;
}
