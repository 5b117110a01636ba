interface Props {
  round: number
  newest: number
  onChoose: (round: number) => void
}

/** A committed round. */
export function RoundChooser({ round, newest, onChoose }: Props) {
  const choose = (wanted: number) => {
    if (Number.isInteger(wanted)) onChoose(Math.min(Math.max(wanted, 1), newest))
  }
  return (
    <div className="round-chooser">
      <button
        type="button"
        className="button"
        aria-label="Previous round"
        disabled={round <= 1}
        onClick={() => {
          choose(round - 1)
        }}
      >
        ‹
      </button>
      <label>
        Round{' '}
        <input
          type="number"
          min={1}
          max={newest}
          value={round}
          onChange={(event) => {
            choose(event.target.valueAsNumber)
          }}
        />
      </label>
      <span className="muted">of {newest}</span>
      <button
        type="button"
        className="button"
        aria-label="Next round"
        disabled={round >= newest}
        onClick={() => {
          choose(round + 1)
        }}
      >
        ›
      </button>
    </div>
  )
}
