/**
 * Loaded into a node with `--import`: at SIGUSR2 its wall clock jumps by TEST_CLOCK_AHEAD_MS, at the next one back. Nothing else of the
 * process notices: timers and durations go by a clock that never jumps.
 */
const offset = Number(process.env['TEST_CLOCK_AHEAD_MS']);
const RealDate = Date;
let ahead = 0;
process.on('SIGUSR2', () => (ahead = ahead === 0 ? offset : 0));
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args) =>
    args.length === 0 ? new target(target.now() + ahead) : Reflect.construct(target, args),
  get: (target, key) => (key === 'now' ? () => target.now() + ahead : (Reflect.get(target, key) as unknown)),
});
