/** Waits that grow, so that a service that wakes up is not overrun. */

export interface RetryOptions {
  attempts: number;
  firstDelay: number;
}

export const DEFAULT_RETRY: RetryOptions = { attempts: 3, firstDelay: 200 };

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Runs `work` until it succeeds or the attempts are used up. */
export async function withRetry<T>(work: () => Promise<T>, options: RetryOptions = DEFAULT_RETRY): Promise<T> {
  let delay = options.firstDelay;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= options.attempts) {
        throw error;
      }
      await sleep(delay);
      delay *= 2;
    }
  }
}
