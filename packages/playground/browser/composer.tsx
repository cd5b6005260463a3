import { Composer, PollButton } from '@parley/react';
import type { ComposerProps } from '@parley/react';

/** The kit's composer, with a button that asks the others something. */
export const DemoComposer = (props: ComposerProps) => (
  <Composer {...props} tools={<PollButton conversationId={props.conversationId} />} />
);
