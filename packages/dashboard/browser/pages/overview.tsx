import type { ReactNode } from 'react';
import { useEnvironment } from '../api/roles.ts';
import { Page } from '../ui/page.tsx';
import { QuickStart } from './quick-start.tsx';

export default function Overview(): ReactNode {
  return (
    <Page title={useEnvironment()?.name ?? 'Overview'}>
      <QuickStart />
    </Page>
  );
}
