import type uPlot from 'uplot'

/** uPlot's numbers for a logarithm and an even scale, which its types declare without exporting them. */
export function distribution(log: boolean): uPlot.Scale.Distr {
  const number: unknown = log ? 3 : 1
  return number as uPlot.Scale.Distr
}
