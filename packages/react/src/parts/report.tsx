import { later } from './later.ts';

/** Asks why something is reported, and reports it. It is loaded when it is first shown. */
export const ReportDialog = later(() => import('./report-dialog.tsx'));
