import '@mantine/core/styles.css';
import './style.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { App } from './app.tsx';
import { createQueryClient } from './api/session.ts';
import { theme, variables } from './theme.ts';

declare global {
  var __webpack_nonce__: string;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')!.content;

// Dialogs of the kit add a style through a package that looks here.
globalThis.__webpack_nonce__ = nonce;

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={createQueryClient()}>
        <Router base="/dashboard">
          <App />
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
