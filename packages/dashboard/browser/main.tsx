import '@parley/react/tokens.css';
import '@fontsource-variable/geist/index.css';
import '@fontsource-variable/geist-mono/index.css';
import './kit.css';
import './style.css';
import './shell.css';
import './parts.css';
import './charts.css';
import './trail.css';
import './boxes.css';
import './moderation.css';
import { MantineProvider, useComputedColorScheme } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, useLayoutEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { begin } from './begin.ts';
import { App } from './frame.ts';
import { createQueryClient } from './api/session.ts';
import { theme, variables } from './theme.ts';
import { showTips } from './ui/time.tsx';

declare global {
  var __webpack_nonce__: string;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')!.content;

// Dialogs of the kit add a style through a package that looks here.
globalThis.__webpack_nonce__ = nonce;

/** The tokens follow the scheme that the kit shows. */
function TokenTheme(): null {
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  useLayoutEffect(() => {
    document.documentElement.dataset['theme'] = scheme;
  }, [scheme]);
  return null;
}

const base = '/dashboard';
showTips();
const client = createQueryClient();
await begin(client, base);

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <TokenTheme />
      <QueryClientProvider client={client}>
        <Router base={base}>
          <App />
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
