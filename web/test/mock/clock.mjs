// The story's time and chance. Both can be made to stand still, so that a screen looks the same
// each time.

export const clock = { now: () => Date.now(), random: () => Math.random(), stands: false };

/** From now on it is always this moment, and nothing happens. */
export function stand(atMs) {
  clock.now = () => atMs;
  clock.random = () => 0.5;
  clock.stands = true;
}
