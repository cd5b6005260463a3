import { memo, StrictMode } from 'react';
import { createClient } from '@parley/client';
import type { Client } from '@parley/client';
import { Chat, Message, ParleyProvider } from '@parley/react';
import type { MessageProps, ParleyProviderProps } from '@parley/react';

/** What the browser tests look at. `rendered` has the text of each row that rendered. */
export interface Kit {
  rendered: string[];
  client: Client | null;
  /** Cuts the network, or mends it. A browser that goes offline leaves open sockets as they are. */
  cut(offline: boolean): void;
}
let isOffline = false;
const sockets = new Set<{ close(): void }>();
export const kit: Kit = {
  rendered: [],
  client: null,
  cut: (offline) => {
    isOffline = offline;
    if (offline) for (const socket of sockets) socket.close();
  },
};
export const socketClass = () =>
  class extends WebSocket {
    constructor(url: string, protocols: string[]) {
      if (isOffline) throw new Error('There is no network.');
      super(url, protocols);
      sockets.add(this);
    }
  };

const Counted = memo((props: MessageProps) => {
  kit.rendered.push(props.item.text ?? '');
  return <Message {...props} />;
});

export interface Options extends Omit<ParleyProviderProps, 'client'> {
  url: string;
  token: string;
}

export function App({ url, token, ...options }: Options) {
  const client = (kit.client ??= createClient({ url, token: () => token, WebSocket: socketClass() }));
  return (
    <StrictMode>
      <ParleyProvider client={client} connect {...options}>
        <Chat slots={{ Message: Counted }} empty={<p className="parley-empty">Choose a conversation</p>} />
      </ParleyProvider>
    </StrictMode>
  );
}
