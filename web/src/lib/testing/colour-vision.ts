// Human colour vision, for tests of colours that carry meaning.
type Linear = [number, number, number]

/** Vision without one kind of cone, in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1). */
export const SIGHT: Record<string, [Linear, Linear, Linear]> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  'no red': [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  'no green': [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  'no blue': [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

export const GROUND = { light: '#ffffff', dark: '#1b1b19' }

function linear(hex: string): Linear {
  const part = (from: number) => {
    const value = Number.parseInt(hex.slice(from, from + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return [part(1), part(3), part(5)]
}

function dot(a: Linear, b: Linear): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

export function seen(hex: string, [r, g, b]: [Linear, Linear, Linear]): Linear {
  const colour = linear(hex)
  return [dot(r, colour), dot(g, colour), dot(b, colour)]
}

/** Oklab, in which distances match perceived differences. */
export function oklab(colour: Linear): Linear {
  const l = Math.cbrt(dot([0.4122214708, 0.5363325363, 0.0514459929], colour))
  const m = Math.cbrt(dot([0.2119034982, 0.6806995451, 0.1073969566], colour))
  const s = Math.cbrt(dot([0.0883024619, 0.2817188376, 0.6299787005], colour))
  return [
    dot([0.2104542553, 0.793617785, -0.0040720468], [l, m, s]),
    dot([1.9779984951, -2.428592205, 0.4505937099], [l, m, s]),
    dot([0.0259040371, 0.7827717662, -0.808675766], [l, m, s]),
  ]
}

export function distance(a: Linear, b: Linear): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])
}

/** Of WCAG, from 1 to 21. */
export function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [a, b].map((hex) => dot([0.2126, 0.7152, 0.0722], linear(hex))).sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}
