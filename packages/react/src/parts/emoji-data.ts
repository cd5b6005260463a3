/**
 * The platform's own emoji, and few of them: a table of all would weigh more than the rest of the kit. Each with the English
 * words that find it; `strings.emojiWords` adds those of another language.
 */
const lines = [
  `😀 grin happy smile
😃 smile happy joy
😄 smile happy laugh eyes
😁 beam grin teeth
😆 laugh squint haha
😅 sweat relief nervous
😂 joy tears laugh lol
🤣 rofl laugh floor
🙂 slight smile
🙃 upside down silly
😉 wink
😊 blush pleased smile
😇 angel innocent halo
🥰 love hearts adore
😍 love heart eyes
😘 kiss blow
😋 yum tasty tongue
😜 wink tongue joke
🤪 zany crazy goofy
🤗 hug embrace
🤭 giggle oops hand
🤔 think hmm wonder
🤐 zip quiet secret
😐 neutral meh
😏 smirk
🙄 roll eyes annoyed
😬 grimace awkward
😌 relieved calm
😔 pensive sad
😴 sleep tired zzz
🤒 sick ill fever
🥳 party celebrate birthday
😎 cool sunglasses
🤓 nerd glasses
😕 confused unsure
😟 worried
😮 wow surprised open
😳 flushed embarrassed
🥺 please pleading puppy
😢 cry sad tear
😭 sob cry loud
😱 scream fear shock
😤 huff proud triumph
😡 angry mad rage
🤯 mind blown explode
🥶 cold freezing
🥵 hot heat
🤖 robot bot
👻 ghost boo
🤝 handshake deal agree`,
  `👍 thumbs up yes like good
👎 thumbs down no dislike bad
👌 ok perfect
🤞 fingers crossed luck hope
✌️ peace victory two
🤘 rock horns
👈 left point
👉 right point
👆 up point
👇 down point
👋 wave hello bye
✋ hand stop high five
👏 clap applause bravo
🙌 hooray praise hands
🙏 thanks please pray
💪 strong muscle arm
👀 eyes look see
🧠 brain smart
🤷 shrug dunno
🤦 facepalm
❤️ heart love red
🧡 heart orange
💛 heart yellow
💚 heart green
💙 heart blue
💜 heart purple
🖤 heart black
🤍 heart white
💔 broken heart
💯 hundred score full
✅ check done yes
❌ cross no wrong
❓ question
❗ exclamation important
⚠️ warning caution
🔥 fire hot lit
✨ sparkles new magic
⭐ star favourite
🎉 party tada celebrate congratulations
🎂 cake birthday
🎁 gift present
🏆 trophy win`,
  `🐶 dog puppy
🐱 cat kitten
🐻 bear
🦊 fox
🐝 bee
🦋 butterfly
🌱 seedling plant grow
🌲 tree pine
🌻 sunflower flower
🌹 rose flower
🍎 apple fruit
🍋 lemon fruit
🍓 strawberry fruit
🥕 carrot vegetable
🍞 bread
🧀 cheese
🍕 pizza
🍔 burger
🍰 cake slice
🍫 chocolate
☕ coffee hot
🍵 tea
🍺 beer
🍷 wine
🥂 cheers toast
⚽ football soccer ball
🎮 game controller
🎵 music note
🎧 headphones music
📷 camera photo
💡 idea lamp light bulb
🔋 battery
💻 laptop computer
📱 phone mobile
📎 paperclip attach
📌 pin
📅 calendar date
📦 package parcel box
📬 mail post letter
📈 chart up growth
✏️ pencil write edit
🔍 search magnifier
🔑 key
🔒 lock secure
🔨 hammer tool
🐛 bug insect
🚗 car
🚲 bicycle bike
🚆 train
✈️ plane flight travel
🚀 rocket launch ship
🏠 house home
⏰ alarm clock time
☀️ sun sunny
🌧️ rain
❄️ snow cold
🌙 moon night
🌍 earth world globe`,
];

export interface Emoji {
  emoji: string;
  words: readonly string[];
}
export const groups: readonly (readonly Emoji[])[] = lines.map((group) =>
  group.split('\n').map((line) => {
    const [emoji, ...words] = line.split(' ');
    return { emoji: emoji!, words };
  }),
);
