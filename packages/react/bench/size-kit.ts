export { createClient } from '@parley/client';
export { Chat, ParleyProvider } from '@parley/react';
