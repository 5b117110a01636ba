interface Props {
  round: number
  rounds: number
}

export function RoundProgress({ round, rounds }: Props) {
  return (
    <span className="round-progress">
      <progress max={rounds} value={round} aria-label="Rounds committed" />
      <span className="number">
        {round}
        <span className="muted"> / {rounds}</span>
      </span>
    </span>
  )
}
