import { createRoot } from 'react-dom/client';
import { createClient } from '@parley/client';
import { createCalls } from '@parley/client/calls';
import { Chat, ParleyProvider } from '@parley/react';
import { CallsProvider, CallStage, IncomingCall, useCall, useCalls } from '@parley/react/calls';
import '@fontsource-variable/geist';
import '@parley/react/styles.css';
import { kit, socketClass } from './app.tsx';

/** The whole kit with real calls, as an application would put it together. */
const { url, token } = (globalThis as unknown as { options: { url: string; token: string } }).options;
const client = createClient({ url, token: () => token, WebSocket: socketClass() });
const calls = createCalls(client);
Object.assign(globalThis, { kit });

function Page() {
  const { start } = useCalls();
  const call = useCall();
  return (
    <div style={{ position: 'relative', height: '100%' }}>
      <Chat
        threadActions={(id) => (
          <button
            type="button"
            className="parley-button"
            aria-label="Video call"
            onClick={() => void start(id, { kind: 'video' })}
          >
            <svg className="parley-icon" width="18" height="18" viewBox="0 0 24 24" aria-hidden="true">
              <path d="m16 13 5.2 3.5a.5.5 0 0 0 .8-.4V7.9a.5.5 0 0 0-.8-.4L16 10.5M4 6h10a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2z" />
            </svg>
          </button>
        )}
      />
      <IncomingCall style={{ position: 'absolute', insetInlineEnd: 24, insetBlockStart: 24, zIndex: 5 }} />
      {call ? (
        <div style={{ position: 'absolute', inset: 0, zIndex: 4 }}>
          <CallStage call={call.handle} />
        </div>
      ) : null}
    </div>
  );
}
const root = document.getElementById('root')!;
root.style.fontFamily = "'Geist Variable', sans-serif";
createRoot(root).render(
  <ParleyProvider client={client} connect theme="light" locale="en-GB">
    <CallsProvider calls={calls}>
      <Page />
    </CallsProvider>
  </ParleyProvider>,
);
