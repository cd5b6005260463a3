// Which way imports go (ARCHITECTURE.md): protocol <- everything; in the server transport -> realtime -> features -> log -> platform.
const server = '^packages/server/src';
const composition = '((compose|cli|reseal)/|(compose|main|serve|cli)\\.ts$)';
/**
 * The features, each of which may import those before it and nothing after it. What happens in one and concerns a later
 * one goes through features/happenings.ts.
 */
const features = [
  // Look-ups and the reader of messages, which all features share.
  'sql',
  'audit',
  'idempotency',
  'users',
  'tenancy',
  'accounts',
  'logs',
  'live',
  'diagnostics',
  'blocks',
  'conversations',
  'presence',
  'receipts',
  'sync',
  'uploads',
  'events',
  'webhooks',
  'push',
  'storage',
  'words',
  'hooks',
  'messages',
  'reactions',
  'pins',
  'polls',
  'mentions',
  'calls',
  'analytics',
  'reports',
  'plans',
  'retention',
  'erasure',
];
const feature = (names) => `${server}/features/(${names.join('|')})/`;
const above = (layer, higher) => ({
  name: `server-${layer}-looks-down`,
  comment:
    'In the server imports go transport -> realtime -> features -> log -> platform; compose, main and cli see all.',
  severity: 'error',
  from: { path: `${server}/${layer}/` },
  to: { path: [...higher.map((name) => `${server}/${name}/`), `${server}/${composition}`] },
});

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'protocol-stands-alone',
      comment: 'protocol imports nothing of ours.',
      severity: 'error',
      from: { path: '^packages/protocol/src/' },
      to: { path: '^(packages|bench|scripts)/', pathNot: '^packages/protocol/' },
    },
    {
      name: 'protocol-does-no-io',
      comment: 'protocol is data and types; only its generator touches files.',
      severity: 'error',
      from: { path: '^packages/protocol/src/', pathNot: '^packages/protocol/src/generate/' },
      to: { dependencyTypes: ['core'] },
    },
    above('platform', ['log', 'features', 'realtime', 'transport']),
    above('log', ['features', 'realtime', 'transport']),
    above('features', ['realtime', 'transport']),
    above('realtime', ['transport']),
    above('transport', []),
    ...features.slice(0, -1).map((name, i) => ({
      name: `feature-${name}-looks-down`,
      comment: 'A feature imports only features before it in the list above.',
      severity: 'error',
      from: { path: feature([name]) },
      to: { path: feature(features.slice(i + 1)) },
    })),
    {
      name: 'features-stand-on-shared-files',
      comment:
        'Files beside the folders of features are for all of them; only handlers.ts and commands.ts see the folders.',
      severity: 'error',
      from: { path: `${server}/features/[^/]+\\.ts$`, pathNot: '(handlers|commands)\\.ts$' },
      to: { path: `${server}/features/([^/]+/|(handlers|commands)\\.ts$)`, pathNot: feature(['sql']) },
    },
    {
      name: 'features-are-listed',
      severity: 'error',
      from: { path: `${server}/features/[^/]+/`, pathNot: feature(features) },
      to: {},
    },
    {
      name: 'handlers-are-on-top',
      severity: 'error',
      from: { path: `${server}/features/[^/]+/` },
      to: { path: `${server}/features/(handlers|commands)\\.ts$` },
    },
    {
      name: 'never-the-server',
      comment: 'What runs elsewhere talks to the server over the network.',
      severity: 'error',
      from: { path: '^packages/(client|react|server-sdk|pages|playground|dashboard|docs)/(src|browser)/' },
      to: { path: '^packages/server/' },
    },
    {
      name: 'dashboard-takes-types-only-from-protocol',
      comment:
        'What its pages need of the protocol at run time is generated: schemas would be most of the bundle.',
      severity: 'error',
      from: { path: '^packages/dashboard/browser/' },
      to: { path: '^packages/protocol/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'server-imports-protocol-only',
      severity: 'error',
      from: { path: `${server}/`, pathNot: `${server}/(compose/|(compose|serve).ts$)` },
      to: { path: '^(packages|bench|scripts)/', pathNot: '^packages/(server|protocol)/' },
    },
    {
      name: 'compose-serves-the-pages',
      comment:
        'The playground, the dashboard and the documentation are more things that compose puts together; nothing else of the server knows them.',
      severity: 'error',
      from: { path: `${server}/(compose/|(compose|serve).ts$)` },
      to: {
        path: '^(packages|bench|scripts)/',
        pathNot: '^packages/(server|protocol|playground|dashboard|docs)/',
      },
    },
    {
      name: 'client-takes-types-only-from-protocol',
      comment: 'The client is small: protocol is a few types to it, and nothing in the bundle.',
      severity: 'error',
      from: { path: '^packages/client/src/' },
      to: { path: '^packages/protocol/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'client-has-no-dependency',
      comment: 'But for calls, which have an entry point of their own.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: '^packages/client/src/calls/' },
      to: { path: ['node_modules', '^packages/client/src/calls/'] },
    },
    {
      name: 'calls-have-one-dependency',
      severity: 'error',
      from: { path: '^packages/client/src/calls/' },
      to: { path: 'node_modules', pathNot: 'node_modules/mediasoup-client/' },
    },
    {
      name: 'react-kit-stands-on-react-and-the-client',
      comment: 'The kit has no dependency of its own.',
      severity: 'error',
      from: { path: '^packages/react/src/' },
      to: {
        path: ['node_modules', '^packages/'],
        pathNot: ['node_modules/(@types/)?react(-dom)?/', '^packages/(react|client)/src/'],
      },
    },
    {
      name: 'react-chat-without-calls',
      comment: 'Calls have an entry point of their own.',
      severity: 'error',
      from: { path: '^packages/react/src/', pathNot: '^packages/react/src/calls/' },
      to: { path: ['^packages/react/src/calls/', '^packages/client/src/calls/'] },
    },
    {
      name: 'not-to-tests-or-tools',
      comment: 'Sources import neither tests, nor the benchmark, nor the scripts.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: ['^packages/[^/]+/test/', '^bench/', '^scripts/'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|generated|kit-peer)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.tsx', '.js', '.json'],
    },
  },
};
