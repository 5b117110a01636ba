const MOST_CELLS = 400_000
const [FEWEST, MOST] = [5, 2000]

/** How many rounds are loaded at once: fewer where each has very many participants. */
export function windowOf(participants: number): number {
  return Math.min(MOST, Math.max(FEWEST, Math.floor(MOST_CELLS / Math.max(1, participants))))
}

/** After which round the newest `step` begin. */
export function firstRound(last: number, step: number): number {
  return Math.max(0, last - step)
}
