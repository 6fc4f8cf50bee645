package triad;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.List;
import org.apache.commons.cli.Option;
import org.apache.commons.cli.Options;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/** Prints what the original's mqadmin can be asked for: "verb VERB" lines and "option VERB SHORT LONG" lines. */
public class VerbOptions {
    public static void main(String[] args) throws Exception {
        MQAdminStartup.initCommand();
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) || !List.class.isAssignableFrom(field.getType())) continue;
            field.setAccessible(true);
            for (Object one : (List<?>) field.get(null)) print((SubCommand) one);
        }
    }

    private static void print(SubCommand verb) {
        System.out.println("verb " + verb.commandName());
        for (Object one : verb.buildCommandlineOptions(new Options()).getOptions()) {  // untyped in the 1.2 of that library
            Option option = (Option) one;
            System.out.println("option " + verb.commandName() + " " + option.getOpt() + " " + option.getLongOpt());
        }
    }
}
