import { Alert, Button, Text } from '@mantine/core';
import { Component } from 'react';
import type { ReactNode } from 'react';

/** A page that fails leaves the menu standing. */
export class Boundary extends Component<{ children: ReactNode }, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null };

  static getDerivedStateFromError(failed: Error): { failed: Error } {
    return { failed };
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <Alert color="red" variant="light" role="alert" title="This page could not be shown">
        <Text size="sm" mb="sm">
          {this.state.failed.message}
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => location.reload()}>
          Load it again
        </Button>
      </Alert>
    );
  }
}
