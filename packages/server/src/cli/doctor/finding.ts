/** What the doctor found in one area: how it is, and what to do about it. */
export interface Finding {
  area: Area;
  status: 'ok' | 'warning' | 'problem';
  found: string;
  advice: string | null;
}

export const areas = [
  'settings',
  'data directory',
  'store',
  'key',
  'redis',
  'ports',
  'media',
  'clock',
  'disk',
  'proxy',
  'versions',
] as const;
export type Area = (typeof areas)[number];

export const ok = (area: Area, found: string): Finding => ({ area, status: 'ok', found, advice: null });
const finding =
  (status: Finding['status']) =>
  (area: Area, found: string, advice: string): Finding => ({ area, status, found, advice });
export const warning = finding('warning');
export const problem = finding('problem');
