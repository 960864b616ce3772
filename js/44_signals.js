// Work that an `AbortSignal` ends.

import { primordials } from "ext:core/mod.js";
import { abort } from "ext:cx/10_web.js";

const { ObjectPrototypeIsPrototypeOf, Promise, PromisePrototypeThen } = primordials;

const AbortSignalPrototype = abort.AbortSignal.prototype;

export function isSignal(value) {
  return ObjectPrototypeIsPrototypeOf(AbortSignalPrototype, value);
}

// Resolves to what `work` does, unless the signal aborts first; then `stop` is called. Without a signal it is `work`.
export function abortable(signal, work, stop) {
  if (signal === undefined) {
    return work;
  }
  return new Promise((resolve, reject) => {
    const aborted = () => {
      stop();
      reject(signal.reason);
    };
    // What it comes to then is of no use, and no unhandled rejection.
    const forget = () => PromisePrototypeThen(work, undefined, () => {});
    if (signal.aborted) {
      aborted();
      forget();
      return;
    }
    try {
      signal[abort.add](aborted);
    } catch (error) {
      // A frozen signal takes no listeners: nothing could end the work later.
      stop();
      reject(error);
      forget();
      return;
    }
    const over = (settle) => (value) => {
      signal[abort.remove](aborted);
      settle(value);
    };
    PromisePrototypeThen(work, over(resolve), over(reject));
  });
}
