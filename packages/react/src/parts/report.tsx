import { lazy, Suspense } from 'react';
import type { ReportDialogProps } from './report-dialog.tsx';

const Dialog = lazy(() => import('./report-dialog.tsx'));

/** Asks why something is reported, and reports it. It is loaded when it is first shown. */
export const ReportDialog = (props: ReportDialogProps) => (
  <Suspense fallback={null}>
    <Dialog {...props} />
  </Suspense>
);
