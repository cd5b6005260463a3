import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

export default function Palette({ close }: { env: string; close: () => void }): ReactNode {
  return <Modal opened onClose={close} title="Find or do" />;
}
