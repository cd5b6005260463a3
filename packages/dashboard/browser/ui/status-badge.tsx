import { Badge } from '@mantine/core';
import type { ReactNode } from 'react';

export const StatusBadge = ({ status }: { status: string }): ReactNode => (
  <Badge
    color={{ enabled: 'teal.9', succeeded: 'teal.9', pending: 'blue.9' }[status] ?? 'red.9'}
    variant="filled"
    radius="sm"
  >
    {status}
  </Badge>
);
