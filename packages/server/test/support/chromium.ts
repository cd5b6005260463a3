import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { use } from './use.ts';

/**
 * Chromium without a window, as Debian builds it for automation: it starts faster and draws with less CPU time than the
 * whole browser, and it is the same engine.
 */
const shell = '/usr/bin/chromium-headless-shell';
/**
 * The whole browser, for tests of touch, looks and speed: the other one always has a pointer that hovers, also where it
 * pretends to be a phone, and draws letters a fraction of a pixel elsewhere.
 */
export const wholeBrowser = '/usr/bin/chromium';

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page that a test serves has no address of its own; without this flag it could not connect to this machine.
  '--disable-features=LocalNetworkAccessChecks',
];

/** A camera and a microphone that are not there: few pictures a second, because this machine encodes for everybody. */
export const fakeDevices = [
  '--autoplay-policy=no-user-gesture-required',
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream=fps=10',
];

export const launchChromium = (more: readonly string[] = [], program = shell): Promise<Browser> =>
  chromium.launch({ executablePath: program, args: [...flags, ...more] });

/** A browser for all tests of the file. */
export const useBrowser = (more?: readonly string[], program?: string): Browser =>
  use(
    () => launchChromium(more, program),
    (browser) => browser.close(),
  );
