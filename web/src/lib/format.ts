const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Sizes in powers of ten, three significant digits: 8192 → "8.19 kB". */
export function formatBytes(bytes: number): string {
  return bytesInDigits(bytes, 3)
}

/** A tick of an axis of bytes, with every digit that it has. */
export function byteTick(bytes: number): string {
  return bytesInDigits(bytes, TICK_DIGITS)
}

/** Enough for every tick; the digits beyond are noise of the computation. */
const TICK_DIGITS = 10

function bytesInDigits(bytes: number, digits: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), BYTE_UNITS.length - 1)
  const value = bytes / 1000 ** power
  // 999,999 B rounds to 1,000 kB: carry it into the next unit.
  const carry = Number(value.toPrecision(digits)) >= 1000 && power < BYTE_UNITS.length - 1
  const shown = carry ? value / 1000 : value
  return `${Number(shown.toPrecision(digits)).toString()} ${BYTE_UNITS[power + Number(carry)] ?? ''}`
}

/** Whole numbers with their thousands apart: 62920 → "62,920". */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en')
}

/** "1 round", "1,200 rounds": a count with its noun. */
export function formatCounted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** As many significant digits, never with an exponent: 1234 in three digits → "1,230". */
export function formatDigits(value: number, digits: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: digits })
}

/** Four significant digits, trailing zeros kept so that columns line up: 1.7 → "1.700". */
export function formatLoss(value: number): string {
  return Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(2)
    : value.toPrecision(4)
}

/** Rouge-L is stored in percent. */
export function formatPercent(value: number): string {
  return `${value.toFixed(1)} %`
}

/** "0.42 s", "4.2 s", "42 s", "3 min 20 s", "2 h 5 min". */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return `${seconds.toFixed(2)} s`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

/** A tick of an elapsed-time axis: "0.5 s", "45 s", "2 min", "1:20 min", "1:30 h", "1:00:30 h". */
export function formatElapsedTick(seconds: number): string {
  if (seconds < 60 || !Number.isInteger(seconds)) return `${plainTick(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  const [hours, rest] = [Math.floor(minutes / 60), twoDigits(seconds % 60)]
  if (hours === 0) return `${minutes}${rest === '00' ? '' : `:${rest}`} min`
  if (rest !== '00') return `${hours}:${twoDigits(minutes % 60)}:${rest} h`
  return `${hours}${minutes % 60 === 0 ? '' : `:${twoDigits(minutes % 60)}`} h`
}

const DAY_SECONDS = 86_400

function twoDigits(number: number): string {
  return String(number).padStart(2, '0')
}

/** The ticks of a clock axis, in the reader's time zone: the time of day, with the day beyond one day; the day at midnight. */
export function clockTicks(seconds: readonly number[]): string[] {
  const times = seconds.map((second) => new Date(second * 1000))
  const long = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0) >= DAY_SECONDS
  return times.map((time) => {
    const day = time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
    if (time.getHours() + time.getMinutes() + time.getSeconds() === 0) return day
    const clock = time.toLocaleTimeString(
      'en-GB',
      time.getSeconds() === 0 ? { hour: '2-digit', minute: '2-digit' } : {},
    )
    return long ? `${day}, ${clock}` : clock
  })
}

/** "520×", "1.4×": two digits, since it is an estimate. */
export function formatRatio(ratio: number): string {
  return `${Number(ratio.toPrecision(2)).toLocaleString('en')}×`
}

const AGO_UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** "5 minutes ago"; anything within a minute of now is "just now". */
export function formatAgo(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000
  const unit = AGO_UNITS.find(([, size]) => Math.abs(seconds) >= size)
  return unit ? AGO.format(Math.trunc(seconds / unit[1]), unit[0]) : 'just now'
}

/** The reader's own locale and time zone, to the second. */
export function formatTime(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}

/** The time of day in the reader's own time zone, to the minute: "13:05". */
export function formatClock(time: number): string {
  return new Date(time).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
}

/** Enough of a digest to recognise it; the whole one is a click away. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 10)
}

/** Seconds from one instant to another, never negative. */
export function secondsBetween(from: string, to: string): number {
  return Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000)
}

/** A tick of an axis, with every digit that it has. */
export function plainTick(value: number): string {
  return String(Number(value.toPrecision(TICK_DIGITS)))
}

/** With a capital letter in front, as sentences begin. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
