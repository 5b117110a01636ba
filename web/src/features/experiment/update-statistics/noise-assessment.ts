import type { UpdateAgreement, RoundUpdate } from '@/api/types'

/** A plain answer to whether K is large enough. */
interface NoiseAssessment {
  suffices: boolean
  answer: string
  /** Alternative changes; empty if nothing needs to change. */
  ways: readonly string[]
}

/** Null if updates are not projected, and so have no K. */
export function assessNoise({ projection_noise: noise }: RoundUpdate): NoiseAssessment | null {
  if (noise === null) return null
  const percent = shownPercent(noise.percent)
  const advised = `at most ${shownPercent(noise.advised_percent)} is advised`
  if (noise.advice.length === 0) {
    const answer = `K is large enough: the projection added noise of ${percent} of the weights to this round; ${advised}.`
    return { suffices: true, answer, ways: [] }
  }
  const refused = `beyond ${shownPercent(noise.most_percent)} a round is refused`
  const helps = noise.advice.some((way) => /^algorithm\.(K|bytes_per_round) /.test(way))
  const fault = helps
    ? 'K is smaller than advised'
    : 'The noise is larger than advised, and more coordinates alone would not help'
  const answer = `${fault}: the projection added noise of ${percent} of the weights to this round; ${advised}, ${refused}.`
  return { suffices: false, answer, ways: noise.advice }
}

/** The error of the reconstructed mean update in words; null if nothing is reconstructed. */
export function errorOf({ error }: RoundUpdate): string | null {
  if (error === null) return null
  const { expected, low, high } = error
  const cosine = 1 / Math.sqrt(1 + expected ** 2)
  const range = low === high ? '' : ` (between ${digits(low)} and ${digits(high)})`
  return (
    `The noise in the rebuilt mean update is ${digits(expected)} times as long as the update${range}; ` +
    `their cosine is about ${digits(cosine)}. The noise has no preferred direction and averages out over rounds.`
  )
}

/** The mean cosine over pairs with its error, and the number of pairs that cannot be distinguished from 0. */
export function agreementOf({ cosines, errors }: UpdateAgreement): string | null {
  const moved = cosines.flatMap((cosine, pair) => (cosine === null ? [] : [{ cosine, error: errors[pair] ?? 0 }]))
  if (moved.length === 0) return null
  const measured = moved.filter(({ error }) => isMeasurable(error))
  const lost = moved.length - measured.length
  if (measured.length === 0) return "K is too small to measure the cosine between two participants' updates."
  const mean = measured.reduce((sum, { cosine }) => sum + cosine, 0) / measured.length
  const error = Math.sqrt(measured.reduce((sum, pair) => sum + pair.error ** 2, 0)) / measured.length
  const unsure = lost + measured.filter((pair) => Math.abs(pair.cosine) < 2 * pair.error).length
  const shown = error === 0 ? digits(mean) : `${digits(mean)} ± ${digits(error)}`
  const lacking = 'K is too small to distinguish'
  const pairs =
    unsure === 0
      ? ''
      : moved.length === 1
        ? ` ${lacking} them from participants that have nothing in common.`
        : ` Of ${moved.length} pairs, ${lacking} ${unsure} from participants that have nothing in common.`
  return `Two participants' updates have a cosine of ${shown} on average.${pairs}`
}

/** "0.2 ± 0.4", or no error where nothing is estimated. */
export function cosineText(cosine: number | null, error: number | null): string {
  if (cosine === null) return 'no change'
  if (!isMeasurable(error)) return 'not measurable'
  return error ? `${cosine.toFixed(2)} ± ${digits(error)}` : cosine.toFixed(2)
}

/** False if the standard error is as large as the largest cosine. */
export function isMeasurable(error: number | null): boolean {
  return error === null || error < 1
}

function digits(value: number): string {
  return String(Number(value.toPrecision(2)))
}

function shownPercent(percent: number): string {
  return `${digits(percent)} %`
}
