/**
 * What an environment may switch off (`disabledFeatures`), and what `hello` names as on. To add a feature: its name here, and
 * `feature` in the operations and frames that belong to it; the bindings then refuse them where it is off.
 */
export const featureNames = ['reactions', 'mentions', 'pins', 'polls', 'blocks', 'reports', 'rules'] as const;
export type FeatureName = (typeof featureNames)[number];

/** The features that are on, given those that are off. */
export const featuresOn = (disabled: readonly FeatureName[]): FeatureName[] =>
  featureNames.filter((name) => !disabled.includes(name));
