import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './tarballs.ts';

/** Each bundler with as little configuration as somebody would write; the entry is `page.mjs`. */

export type Bundler = 'vite' | 'webpack' | 'metro' | 'metro without exports';

const config: Record<Bundler, (folder: string, modules: string) => string> = {
  vite: (folder, modules) => `
    import { build } from '${modules}/vite/dist/node/index.js';
    await build({ root: '${folder}', logLevel: 'error', configFile: false,
      build: { outDir: 'out-vite', lib: { entry: 'page.mjs', formats: ['es'], fileName: 'bundle' }, minify: true } });`,
  webpack: (folder, modules) => `
    import webpack from '${modules}/webpack/lib/index.js';
    await new Promise((resolve, reject) =>
      webpack({ context: '${folder}', entry: './page.mjs', mode: 'production', target: 'web',
        output: { path: '${folder}/out-webpack', filename: 'bundle.cjs', chunkFilename: '[id].cjs',
          // A page loads further parts by script elements; here Node loads them.
          chunkFormat: 'commonjs', chunkLoading: 'require', publicPath: '' } },
        (error, stats) => error || stats.hasErrors() || stats.hasWarnings()
          ? reject(error ?? new Error(stats.toString())) : resolve()));`,
  metro: (folder, modules) => metro(folder, modules, true),
  'metro without exports': (folder, modules) => metro(folder, modules, false),
};

/** React Native asks for the conditions \`react-native\` and \`require\`; its versions before 0.79 know no \`exports\`. */
const metro = (folder: string, modules: string, exports: boolean): string => `
  import { renameSync } from 'node:fs';
  import Metro from '${modules}/metro/src/index.js';
  const config = await Metro.loadConfig({ cwd: '${folder}' }, {
    projectRoot: '${folder}', watchFolders: ['${folder}', '${modules}'], resetCache: true, maxWorkers: 1, reporter: { update() {} },
    resolver: { unstable_enablePackageExports: ${exports}, unstable_conditionNames: ['react-native', 'require'],
      resolverMainFields: ['react-native', 'browser', 'main'], sourceExts: ['js', 'mjs', 'json'], platforms: ['ios', 'android'],
      nodeModulesPaths: ['${modules}'], useWatchman: false },
    transformer: { getTransformOptions: async () => ({ transform: { experimentalImportSupport: true, inlineRequires: false } }),
      babelTransformerPath: '${modules}/metro-babel-transformer/src/index.js' },
    serializer: { getPolyfills: () => [] },
  });
  await Metro.runBuild(config, { entry: 'page.mjs', platform: 'ios', dev: false, minify: false, out: '${folder}/out-metro-${exports}' });
  // It is a script, whatever the project says of its modules.
  renameSync('${folder}/out-metro-${exports}.js', '${folder}/out-metro-${exports}.cjs');
  process.exit(0);`;

const output: Record<Bundler, string> = {
  vite: 'out-vite/bundle.js',
  webpack: 'out-webpack/bundle.cjs',
  metro: 'out-metro-true.cjs',
  'metro without exports': 'out-metro-false.cjs',
};

/** @returns the path of the bundle. */
export async function bundle(name: Bundler, folder: string, hosts: string): Promise<string> {
  const script = join(folder, `bundle-${name.replaceAll(' ', '-')}.mjs`);
  await writeFile(script, config[name](folder, join(hosts, 'node_modules')));
  await run(process.execPath, [script], folder);
  return join(folder, output[name]);
}
