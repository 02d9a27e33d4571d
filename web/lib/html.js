// @ts-check
// What every page builds with: Preact's elements written as templates, its hooks, and signals. The types stand here: what
// is vendored has lost its own.
import { h, render, Fragment } from "../vendor/preact.mjs";
import * as hooks from "../vendor/preact-hooks.mjs";
import * as signals from "../vendor/signals.mjs";
import htm from "../vendor/htm.mjs";

/**
 * A value that tells who reads it when it changes; peek reads it in secret.
 * @template T
 * @typedef {{value: T, peek: () => T}} Signal
 */

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
export { h, render, Fragment };
/** @type {(run: () => any, when?: unknown[]) => void} */
export const useEffect = hooks.useEffect;
/** @type {(run: () => any, when?: unknown[]) => void} */
export const useLayoutEffect = hooks.useLayoutEffect;
/** @type {<T>(make: () => T, when?: unknown[]) => T} */
export const useMemo = hooks.useMemo;
/** @type {<T>(value: T) => {current: T}} */
export const useRef = hooks.useRef;
/** @type {(run: () => void) => void} */
export const batch = signals.batch;
/** @type {<T>(make: () => T) => {readonly value: T, peek: () => T}} */
export const computed = signals.computed;
/** @type {(run: () => any) => () => void} */
export const effect = signals.effect;
/** @type {<T>(value: T) => Signal<T>} */
export const signal = signals.signal;
/** @type {<T>(make: () => T) => {readonly value: T, peek: () => T}} */
export const useComputed = signals.useComputed;
/** @type {<T>(value: T) => Signal<T>} */
export const useSignal = signals.useSignal;
