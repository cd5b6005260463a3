import { createRoot, hydrateRoot } from 'react-dom/client';
import '@parley/react/styles.css';
import { App, kit } from './app.tsx';
import type { Options } from './app.tsx';

const page = globalThis as unknown as { kit: typeof kit; options: Options };
page.kit = kit;
const root = document.getElementById('root')!;
if (root.firstChild) hydrateRoot(root, <App {...page.options} />);
else createRoot(root).render(<App {...page.options} />);
