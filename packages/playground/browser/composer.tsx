import { Composer, PollButton } from '@parley/react';
import type { ComposerProps } from '@parley/react';
import { Recorder } from './recorder.tsx';

/** The kit's composer, with buttons that ask the others something and record a voice note. */
export const DemoComposer = (props: ComposerProps) => (
  <Composer
    {...props}
    tools={
      <>
        <PollButton conversationId={props.conversationId} />
        <Recorder conversationId={props.conversationId} />
      </>
    }
  />
);
